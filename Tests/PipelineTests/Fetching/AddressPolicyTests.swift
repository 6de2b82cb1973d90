import Pipeline
import Testing

struct AddressPolicyTests {
    @Test(arguments: [
        ("1.1.1.1", AddressClass.public), ("8.8.8.8", .public), ("172.15.255.255", .public), ("172.32.0.0", .public),
        ("100.63.255.255", .public), ("100.128.0.0", .public), ("223.255.255.255", .public),
        ("0.0.0.0", .unspecified), ("0.1.2.3", .unspecified), ("127.0.0.1", .loopback), ("127.255.255.255", .loopback),
        ("10.0.0.1", .private), ("172.16.0.0", .private), ("172.31.255.255", .private), ("192.168.1.1", .private),
        // Azure's address for metadata and agents, of a block that is public otherwise.
        ("168.63.129.16", .private), ("168.63.129.15", .public), ("64:ff9b::a83f:8110", .private),
        ("100.64.0.0", .carrierGradeNAT), ("100.127.255.255", .carrierGradeNAT), ("169.254.169.254", .linkLocal),
        ("192.0.0.8", .reserved), ("192.0.2.1", .reserved), ("198.18.0.1", .reserved), ("198.51.100.1", .reserved),
        ("203.0.113.1", .reserved), ("224.0.0.1", .multicast), ("239.255.255.255", .multicast),
        ("240.0.0.1", .reserved), ("255.255.255.255", .reserved),
        ("2606:4700::1111", .public), ("::", .unspecified), ("::1", .loopback), ("fc00::1", .private),
        ("fdff::1", .private), ("fe80::1", .linkLocal), ("fec0::1", .private), ("ff02::1", .multicast),
        ("2001:db8::1", .reserved), ("100::1", .reserved), ("3fff::1", .reserved), ("4000::1", .reserved),
        ("::ffff:127.0.0.1", .loopback), ("::ffff:8.8.8.8", .public), ("::ffff:10.0.0.1", .private),
        ("::127.0.0.1", .loopback), ("::10.1.2.3", .private), ("::ffff:0:192.168.0.1", .private),
        ("2002:7f00:1::", .loopback), ("2002:a00:1::1", .private), ("2002:808:808::1", .public),
        ("64:ff9b::7f00:1", .loopback), ("64:ff9b::a9fe:a9fe", .linkLocal), ("64:ff9b::808:808", .public),
        ("64:ff9b:1::808:808", .reserved), ("2001:0:808:808::80ff:fffe", .loopback),
        ("2001:0:a00:1::f7f7:f7f7", .private), ("2606:4700::5efe:c0a8:1", .private),
        ("2606:4700::200:5efe:7f00:1", .loopback),
    ])
    func `every special address has its class, embedded ones too`(text: String, expected: AddressClass) throws {
        let address = try #require(IPAddress(text))
        #expect(AddressPolicy.classify(address) == expected)
        #expect(AddressPolicy().allows(address, port: 80) == (expected == .public))
        #expect(AddressPolicy(.all).allows(address, port: 80))
    }

    @Test(arguments: ["127.1", "0x7f.0.0.1", "2130706433", "", "::g", "fe80::1%lo", "1.2.3.4.5"])
    func `what is no plain address is none`(text: String) { #expect(IPAddress(text) == nil) }

    @Test(arguments: [
        ("127.0.0.1", "127.0.0.1", 80, true), ("127.0.0.1", "127.0.0.2", 80, false),
        ("127.0.0.1:8080", "127.0.0.1", 8080, true), ("127.0.0.1:8080", "127.0.0.1", 80, false),
        ("10.0.0.0/8", "10.255.0.1", 1, true), ("10.0.0.0/8:443", "10.0.0.1", 443, true),
        ("10.0.0.0/8:443", "10.0.0.1", 80, false), ("127.0.0.1", "::ffff:127.0.0.1", 80, true),
        ("::1", "::1", 80, true), ("[::1]:80", "::1", 80, true), ("[::1]:80", "::1", 81, false),
        ("fd00::/8", "fd12::1", 80, true), ("[fd00::]/8", "fd12::1", 80, true), ("[fd00::/8]:9", "fd12::1", 9, true),
        ("0.0.0.0/0", "::1", 80, false),
    ])
    func `a listed block admits its addresses`(entry: String, address: String, port: Int, expected: Bool) throws {
        let policy = AddressPolicy(try AddressRule([entry]))
        #expect(policy.allows(try #require(IPAddress(address)), port: port) == expected)
    }

    @Test(arguments: [
        "", "localhost", "10.0.0.0/33", "10.0.0.0/-1", "127.0.0.1:0", "127.0.0.1:70000", "[::1", "[::1]x",
    ])
    func `a malformed entry is none`(text: String) { #expect(throws: InvalidSetting.self) { try AddressRule([text]) } }
}

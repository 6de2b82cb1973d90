import PipelineFleet
import Testing

@Suite struct RedisURLTests {
    @Test(arguments: [
        ("redis://localhost", "redis://localhost:6379", "", nil),
        ("rediss://cache.example:6380/3", "rediss://cache.example:6380/3", "", nil),
        ("REDIS://127.0.0.1/", "redis://127.0.0.1:6379", "", nil),
        ("redis://:secret@host", "redis://host:6379", "", "secret"),
        ("redis://node:s%40f%2Fe%3A%25%C3%A9@host:1", "redis://host:1", "node", "s@f/e:%é"),
        ("redis://node:a:b@host", "redis://host:6379", "node", "a:b"),
        ("redis://u:p@[::1]:7000/0", "redis://[::1]:7000", "u", "p"),
        ("rediss://[2001:db8::2]", "rediss://[2001:db8::2]:6379", "", nil),
    ])
    func `parses server, credentials and database`(
        text: String, description: String, user: String, password: String?
    ) throws {
        let url = try RedisURL(text)
        #expect(url.description == description)
        #expect("\(url)" == "\(String(reflecting: url))")
        #expect(url.user == user)
        #expect(url.password == password)
        #expect(url.isTLS == description.hasPrefix("rediss"))
    }

    @Test(arguments: [
        ("http://SECRET@host", RedisURL.Problem.scheme), ("SECRET@host", .scheme), ("redis:host", .scheme),
        ("redis://SECRET@host", .credentials), ("redis://user:@host", .credentials),
        ("redis://u:SECRET%4@host", .encoding), ("redis://u:SECRET%zz@host", .encoding),
        ("redis://u:SECRET%FF@host", .encoding),
        ("redis://", .host), ("redis://:6379", .host), ("redis://u:SEC/RET@host", .database), ("redis://[::1", .host),
        ("redis://[host]", .host), ("redis://[::1]6379", .host), ("redis://ho st", .host), ("redis://::1", .host),
        ("redis://host:0", .port), ("redis://host:65536", .port), ("redis://host:", .port), ("redis://host:+1", .port),
        ("redis://host/SECRET@host", .database), ("redis://host/-1", .database), ("redis://host/1/2", .database),
        ("redis://u:SEC?RET@host", .rest), ("redis://host#SECRET", .rest),
    ])
    func `says what is wrong and repeats nothing`(text: String, problem: RedisURL.Problem) throws {
        let error = try #require(throws: RedisURL.Problem.self) { try RedisURL(text) }
        #expect(error == problem)
        #expect(!"\(error)".contains("SEC"))
    }
}

import ImageServer
import Pipeline
import PipelineFleet
import PipelineSupport

// Secrets, which must not appear in messages.

extension SettingForm {
    /// The URL of a Redis server.
    static func redis() -> Self where Value == RedisURL {
        .text(write: { "\($0)" }) { (given, text) throws(SettingErrors) in
            do throws(RedisURL.Problem) { return try RedisURL(text) } catch { throw given.bad("\(error)") }
        }
    }

    /// The configuration of a fleet, written as the URL of its Redis server.
    static func fleet() -> Self where Value == FleetConfiguration {
        .text(write: { "\($0.server)" }) { (given, text) throws(SettingErrors) in
            do throws(InvalidSetting) { return try FleetConfiguration(redis: text) } catch {
                throw given.bad(error.description)
            }
        }
    }

    static func queueKey() -> Self where Value == QueueKey {
        .text(write: { _ in "(secret)" }) { (given, text) throws(SettingErrors) in
            if let key = QueueKey(text) { return key }
            throw given.bad(
                "must have at least \(QueueKey.minBytes) characters; create one with `openssl rand -hex 32`")
        }
    }

    static func adminToken() -> Self where Value == String {
        .text(write: { _ in "(secret)" }) { $1 }.checked(by: AdminToken.init)
    }

    /// Signing keys by name.
    static func signingKeys() -> Self where Value == [SigningKey] {
        Self(
            kind: .names(.text),
            read: { (given) throws(SettingErrors) in
                var keys: [SigningKey] = []
                try given.eachMember { (name, member) throws(SettingErrors) in
                    guard let hex = member.text() else {
                        throw member.bad(
                            "is \(member.value.kindName); expected hexadecimal digits, in quotes if all of them are decimal"
                        )
                    }
                    do throws(InvalidSetting) { keys.append(try SigningKey(id: name, hex: hex)) } catch {
                        throw given.bad(error.message)
                    }
                }
                return keys
            }, write: { .object($0.map { SettingMember(name: $0.id, value: .null) }) })
    }
}

import Pipeline
import PipelineFleet

extension SettingForm where Value == RedisURL? {
    /// The URL of a Redis server; an empty text for none. No message contains it.
    static var redis: Self {
        Self(
            kind: .text,
            read: { (given) throws(SettingErrors) in
                guard case .string(let text) = given.value, !text.isEmpty else { return nil }
                do throws(RedisURL.Problem) { return try RedisURL(text) } catch { throw given.bad("\(error)") }
            }, write: { .string($0.map { "\($0)" } ?? "") })
    }
}

extension SettingForm where Value == FleetConfiguration? {
    /// The URL of a Redis server; an empty text for none. No message contains it.
    static var fleet: Self {
        Self(
            kind: .text,
            read: { (given) throws(SettingErrors) in
                guard case .string(let text) = given.value, !text.isEmpty else { return nil }
                do throws(FleetConfiguration.InvalidURL) { return try FleetConfiguration(redis: text) } catch {
                    throw given.bad(error.description)
                }
            }, write: { .string($0.map { "\($0.server)" } ?? "") })
    }
}

extension SettingForm where Value == QueueKey? {
    /// A secret; an empty text means none. No message contains it.
    static var queueKey: Self {
        Self(
            kind: .text,
            read: { (given) throws(SettingErrors) in
                guard case .string(let text) = given.value, !text.isEmpty else { return nil }
                guard let key = QueueKey(text) else {
                    throw given.bad("needs \(QueueKey.leastBytes) characters or more; `openssl rand -hex 32` makes one")
                }
                return key
            }, write: { .string($0 == nil ? "" : "(secret)") })
    }
}

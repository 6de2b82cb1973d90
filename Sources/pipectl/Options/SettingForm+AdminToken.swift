import PipelineSupport
import ImageServer

extension SettingForm where Value == AdminToken? {
    /// A secret; an empty text means none. No message contains it.
    static var adminToken: Self {
        Self(
            kind: .text,
            read: { (given) throws(SettingErrors) in
                guard case .string(let text) = given.value, !text.isEmpty else { return nil }
                if AdminToken.isPlaceholder(text) {
                    throw given.bad(
                        "is the text of an example, and known to all; `openssl rand -hex 32` makes one")
                }
                guard let token = AdminToken(text) else {
                    throw given.bad(
                        "needs at least \(AdminToken.leastBytes) characters, visible ASCII without spaces; "
                            + "`openssl rand -hex 32` makes one")
                }
                return token
            }, write: { .string($0 == nil ? "" : "(secret)") })
    }
}

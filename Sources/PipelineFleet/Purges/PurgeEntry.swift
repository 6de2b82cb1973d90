/// An entry in the stream of purges, with the fields that could be parsed.
struct PurgeEntry: Sendable, Hashable {
    var id: StreamID
    var number: Int?
    var payload: [UInt8]?
    var node: String?

    init(id: StreamID, number: Int?, payload: [UInt8]?, node: String?) {
        (self.id, self.number, self.payload, self.node) = (id, number, payload, node)
    }

    /// Parses a pair of an ID and its fields. Returns nil if `reply` has a different form.
    init?(_ reply: RedisReply) {
        guard let pair = reply.elements, pair.count == 2, let id = pair[0].text.flatMap(StreamID.init) else {
            return nil
        }
        self.id = id
        let fields = pair[1].elements ?? []
        for (name, value) in zip(fields, fields.dropFirst()).enumerated().filter({ $0.offset % 2 == 0 }).map(\.element)
        {
            switch (name.text, value) {
            case ("number", _): number = value.text.flatMap(PurgePosition.number)
            case ("payload", .bytes(let bytes)): payload = bytes
            case ("node", _): node = value.text
            default: break
            }
        }
    }
}

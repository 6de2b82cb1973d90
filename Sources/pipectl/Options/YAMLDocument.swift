import PipelineSupport
import CYAML

/// A YAML document as a tree, with the line of each node. The parser is libyaml. Plain scalars are numbers, booleans or
/// null according to the core schema of YAML 1.2. `yes`, `no`, `on` and `off` are also booleans, as in YAML 1.1.
struct YAMLDocument {
    struct Node {
        var content: Content
        /// The line number, starting at 1.
        var line: Int
    }

    indirect enum Content {
        case scalar(text: String, value: SettingValue)
        case sequence([Node])
        case mapping([(name: Node, value: Node)])
    }

    /// The reason why a document was rejected.
    struct ParseError: Error {
        var message: String
        /// The line number, starting at 1, or nil if the error does not concern a line.
        var line: Int?
    }

    /// The root node, or nil if the string contains no document, for example only comments.
    let root: Node?

    /// - Throws: `ParseError`, including for aliases, several documents, or more than 64 levels.
    init(_ text: String) throws(ParseError) {
        var parser = Parser()
        root = try parser.document(Array(text.utf8))
    }

    private struct Parser {
        private var parser = yaml_parser_t()
        private static let depth = 64

        mutating func document(_ bytes: [UInt8]) throws(ParseError) -> Node? {
            guard yaml_parser_initialize(&parser) == 1 else { throw ParseError(message: "out of memory") }
            defer { yaml_parser_delete(&parser) }
            // The parser keeps the pointer until it is deleted.
            let copy = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: bytes.count)
            defer { copy.deallocate() }
            _ = copy.initialize(from: bytes)
            yaml_parser_set_input_string(&parser, copy.baseAddress, copy.count)
            var root: Node?
            while true {
                var event = try next()
                defer { yaml_event_delete(&event) }
                switch event.type {
                case YAML_STREAM_START_EVENT, YAML_DOCUMENT_START_EVENT, YAML_DOCUMENT_END_EVENT: continue
                case YAML_STREAM_END_EVENT: return root
                default:
                    guard root == nil else {
                        throw ParseError(
                            message: "the file contains several documents; expected only one", line: Self.line(event))
                    }
                    root = try node(event, depth: 0)
                }
            }
        }

        private mutating func next() throws(ParseError) -> yaml_event_t {
            var event = yaml_event_t()
            guard yaml_parser_parse(&parser, &event) == 1 else {
                let problem = parser.problem.map { String(cString: $0) } ?? "the file cannot be parsed"
                let context = parser.context.map { String(cString: $0) + ", " } ?? ""
                let mark = parser.error == YAML_READER_ERROR ? nil : Int(parser.problem_mark.line) + 1
                throw ParseError(message: context + problem, line: mark)
            }
            return event
        }

        private static func line(_ event: yaml_event_t) -> Int { Int(event.start_mark.line) + 1 }

        /// - Parameter event: The first event of the node. The caller deletes the event.
        private mutating func node(_ event: yaml_event_t, depth: Int) throws(ParseError) -> Node {
            let line = Self.line(event)
            guard depth < Self.depth else {
                throw ParseError(message: "nesting exceeds \(Self.depth) levels", line: line)
            }
            switch event.type {
            case YAML_SCALAR_EVENT: return Node(content: Self.scalar(event), line: line)
            case YAML_SEQUENCE_START_EVENT:
                var elements: [Node] = []
                while let element = try child(until: YAML_SEQUENCE_END_EVENT, depth) { elements.append(element) }
                return Node(content: .sequence(elements), line: line)
            case YAML_MAPPING_START_EVENT:
                var members: [(name: Node, value: Node)] = []
                var names: Set<String> = []
                while let name = try child(until: YAML_MAPPING_END_EVENT, depth) {
                    guard let value = try child(until: YAML_NO_EVENT, depth) else { break }
                    if case .scalar(let text, _) = name.content, !names.insert(text).inserted {
                        throw ParseError(message: "`\(text)` is given twice", line: name.line)
                    }
                    members.append((name, value))
                }
                return Node(content: .mapping(members), line: line)
            case YAML_ALIAS_EVENT: throw ParseError(message: "aliases are not supported", line: line)
            default: throw ParseError(message: "unexpected end", line: line)
            }
        }

        /// Returns the next node, or nil at the end of the collection.
        private mutating func child(until end: yaml_event_type_t, _ depth: Int) throws(ParseError) -> Node? {
            var event = try next()
            defer { yaml_event_delete(&event) }
            return event.type == end ? nil : try node(event, depth: depth + 1)
        }

        private static func scalar(_ event: yaml_event_t) -> Content {
            let scalar = event.data.scalar
            let text = String(
                decoding: UnsafeBufferPointer(start: scalar.value, count: Int(scalar.length)), as: UTF8.self)
            let tag = scalar.tag.map { String(cString: UnsafeRawPointer($0).assumingMemoryBound(to: CChar.self)) }
            let isText = tag == YAML_STR_TAG || tag == nil && scalar.style != YAML_PLAIN_SCALAR_STYLE
            return .scalar(text: text, value: isText ? .string(text) : plain(text))
        }

        /// Returns the value of a plain scalar.
        private static func plain(_ text: String) -> SettingValue {
            switch text.lowercased() {
            case "", "~", "null": return .null
            case "true", "yes", "on": return .bool(true)
            case "false", "no", "off": return .bool(false)
            default: break
            }
            let digits = text.replacing("_", with: "")
            guard let first = digits.utf8.first, first.isDigit || "+-.".utf8.contains(first),
                digits.utf8.contains(where: \.isDigit)
            else { return .string(text) }
            if digits.hasPrefix("0x"), let number = Int(digits.dropFirst(2), radix: 16) { return .int(number) }
            if digits.hasPrefix("0o"), let number = Int(digits.dropFirst(2), radix: 8) { return .int(number) }
            if let number = Int(digits) { return .int(number) }
            let isDecimal = digits.utf8.allSatisfy { $0.isDigit || "+-.eE".utf8.contains($0) }
            if isDecimal, let number = Double(digits) { return .double(number) }
            return .string(text)
        }
    }
}

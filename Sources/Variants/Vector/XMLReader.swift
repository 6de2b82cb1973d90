import CVips
import Glibc

/// Reads an XML document with libxml2, node by node. Expands the entities that the document declares.
struct XMLReader: ~Copyable {
    enum Node {
        case start(isEmpty: Bool), end, text
        /// A comment, a processing instruction, a document type, or another node without content of the picture.
        case other
    }

    /// The most bytes in one value or text, which is a limit of libxml2.
    static let valueLimit = 10_000_000
    private static let isLoaded = cxml_load() != 0
    private let reader: OpaquePointer

    /// Loads libxml2. A worker calls this before its sandbox is applied.
    static func load() { _ = isLoaded }

    /// Creates a reader of bytes, which must stay valid for as long as the reader is in use.
    init(_ bytes: UnsafeRawBufferPointer) throws(RenderError) {
        guard Self.isLoaded else {
            throw RenderError(.libraryUnavailable, "libxml2 cannot be loaded; install the package libxml2")
        }
        // From xmlreader.h: XML_PARSE_NOENT, NOERROR, NOWARNING, NONET. The first also loads external entities, which
        // `SVGDocument.check` refuses, and which the sandbox of a worker prevents.
        let options = Int32(1 << 1 | 1 << 5 | 1 << 6 | 1 << 11)
        let start = bytes.baseAddress?.assumingMemoryBound(to: CChar.self)
        guard bytes.count < Int32.max, let start,
            let reader = cxml.xmlReaderForMemory(start, Int32(bytes.count), nil, nil, options)
        else { throw RenderError(.undecodable, "the SVG is empty, too long, or there is no memory to read it") }
        self.reader = reader
    }

    deinit { cxml.xmlFreeTextReader(reader) }

    /// Moves to the next node. Returns nil at the end of the document.
    func next() throws(RenderError) -> Node? {
        switch cxml.xmlTextReaderRead(reader) {
        case 1: break
        case 0: return nil
        default:
            let line = cxml.xmlTextReaderGetParserLineNumber(reader)
            throw ImageHeader.damaged(
                "SVG",
                "the XML is not well formed near line \(line), or a value has more than \(Self.valueLimit) bytes; "
                    + "check it with `xmllint`")
        }
        // From xmlreader.h: XML_READER_TYPE_ELEMENT, END_ELEMENT, TEXT, CDATA, and two kinds of white space.
        return switch cxml.xmlTextReaderNodeType(reader) {
        case 1: .start(isEmpty: cxml.xmlTextReaderIsEmptyElement(reader) == 1)
        case 15: .end
        case 3, 4, 13, 14: .text
        default: .other
        }
    }

    /// The name of the current element or attribute, without its prefix.
    var name: String { cxml.xmlTextReaderConstLocalName(reader).map { String(cString: $0) } ?? "" }

    /// The namespace of the current element or attribute, or nil if it has none.
    var namespace: String? { cxml.xmlTextReaderConstNamespaceUri(reader).map { String(cString: $0) } }

    /// The current text or the value of the current attribute, with references resolved.
    var value: [UInt8] {
        guard let value = cxml.xmlTextReaderConstValue(reader) else { return [] }
        return Array(UnsafeBufferPointer(start: value, count: strlen(UnsafePointer<CChar>(OpaquePointer(value)))))
    }

    /// Calls `body` at each attribute of the current element.
    func forEachAttribute(_ body: () -> Void) {
        while cxml.xmlTextReaderMoveToNextAttribute(reader) == 1 { body() }
        _ = cxml.xmlTextReaderMoveToElement(reader)
    }
}

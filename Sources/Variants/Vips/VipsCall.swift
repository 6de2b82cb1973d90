import CVips

enum VipsArgument {
    case int(Int)
    case double(Double)
    case bool(Bool)
    /// A string, or the nickname of an enumeration value or flag.
    case string(String)
    case image(Image)
    case images([Image])
    case doubles([Double])
    /// Bytes that must stay valid for as long as any image created from them is in use.
    case bytes(UnsafeRawBufferPointer)
    /// Bytes that are kept alive by the image created from them.
    case stored(PixelStorage)
}

extension VipsArgument: ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral, ExpressibleByBooleanLiteral,
    ExpressibleByStringLiteral
{
    init(integerLiteral value: Int) { self = .int(value) }
    init(floatLiteral value: Double) { self = .double(value) }
    init(booleanLiteral value: Bool) { self = .bool(value) }
    init(stringLiteral value: String) { self = .string(value) }
}

/// Calls a libvips operation by nickname: `VipsCall("resize", ["in": .image(picture), "scale": 0.5]).image()`.
///
/// libvips describes its operations at run time (libvips `doc/binding.md`), so this type is the complete binding.
struct VipsCall {
    let nickname: String
    let arguments: [(String, VipsArgument)]
    /// The error code to use if the operation fails.
    var failure = RenderError.Code.undecodable

    func image() throws(RenderError) -> Image {
        let operation = try built()
        defer { release(operation) }
        let object = property("out", of: operation, type: cvips.vips_image_get_type()) { cvips.g_value_dup_object($0) }
        guard let object else { throw refusal("libvips returned no output") }
        return Image(adopting: OpaquePointer(object), keeping: inputs)
    }

    /// Runs a saver that seeks in its output (`tiffsave_buffer`) and returns a copy of its `buffer`.
    func bytes() throws(RenderError) -> [UInt8] {
        let operation = try built()
        defer { release(operation) }
        let bytes = property("buffer", of: operation, type: cvips.vips_blob_get_type()) { value -> [UInt8]? in
            guard let blob = cvips.g_value_get_boxed(value) else { return nil }
            var length = 0
            guard let start = cvips.vips_blob_get(OpaquePointer(blob), &length) else { return nil }
            return [UInt8](UnsafeRawBufferPointer(start: start, count: length))
        }
        guard let bytes else { throw refusal("libvips returned no output") }
        return bytes
    }

    /// Runs a saver (`pngsave_target`) and returns the bytes that it writes.
    ///
    /// A saver ignores the kill flag of its image while it compresses pixels that it has already read, but it fails if
    /// a write fails. Writes therefore fail once `control` is stopped.
    func written(_ control: RenderControl) throws(RenderError) -> [UInt8] {
        let written = WrittenBytes(control)
        let user = Unmanaged.passUnretained(written).toOpaque()
        guard let target = cvips_target({ WrittenBytes.take($1, $2, $3) }, user) else { throw refusal("out of memory") }
        defer {
            cvips.g_object_unref(UnsafeMutableRawPointer(target))
            withExtendedLifetime(written) {}
        }
        let operation = try built(writingTo: target)
        release(operation)
        return written.bytes
    }

    private var inputs: [AnyObject] {
        arguments.flatMap { _, value -> [AnyObject] in
            switch value {
            case .image(let image): [image]
            case .images(let images): images
            case .stored(let storage): [storage]
            default: []
            }
        }
    }

    private func buildError(_ text: String) -> RenderError {
        // The address space has no room for a stack.
        guard text.contains("Error creating thread") else { return refusal(text) }
        return RenderError(
            .overLimit,
            "\(nickname): there is not enough memory for another thread; use a smaller picture, or raise limits.workerMemory"
        )
    }

    private func refusal(_ text: String) -> RenderError { RenderError(failure, "\(nickname): \(text)") }

    private func built(writingTo target: OpaquePointer? = nil) throws(RenderError) -> OpaquePointer {
        guard let operation = cvips.vips_operation_new(nickname) else {
            throw RenderError(
                .unsupportedFormat, "the installed libvips does not support \(nickname): \(VipsLibrary.takeErrorText())"
            )
        }
        if let target { set("target", target, cvips.vips_target_custom_get_type(), on: operation) }
        for (name, value) in arguments where !set(name, value, on: operation) {
            release(operation)
            throw refusal("argument \(name): \(VipsLibrary.takeErrorText())")
        }
        guard cvips.vips_object_build(operation) == 0 else {
            release(operation)
            throw buildError(VipsLibrary.takeErrorText())
        }
        return operation
    }

    private func release(_ operation: OpaquePointer) {
        cvips.vips_object_unref_outputs(operation)
        cvips.g_object_unref(UnsafeMutableRawPointer(operation))
    }

    private func property<Value>(
        _ name: String, of operation: OpaquePointer, type: Int, _ take: (UnsafePointer<CVipsValue>) -> Value?
    ) -> Value? {
        var value = CVipsValue()
        _ = cvips.g_value_init(&value, type)
        defer { cvips.g_value_unset(&value) }
        cvips.g_object_get_property(operation, name, &value)
        return take(&value)
    }

    private func set(_ name: String, _ object: OpaquePointer, _ type: Int, on operation: OpaquePointer) {
        var value = CVipsValue()
        _ = cvips.g_value_init(&value, type)
        cvips.g_value_set_object(&value, UnsafeMutableRawPointer(object))
        cvips.g_object_set_property(operation, name, &value)
        cvips.g_value_unset(&value)
    }

    private func set(_ name: String, _ argument: VipsArgument, on operation: OpaquePointer) -> Bool {
        if case .string(let text) = argument {
            return cvips.vips_object_set_argument_from_string(operation, name, text) == 0
        }
        var value = CVipsValue()
        switch argument {
        case .string: break
        case .int(let number):
            _ = cvips.g_value_init(&value, Int(CVIPS_TYPE_INT))
            cvips.g_value_set_int(&value, Int32(clamping: number))
        case .double(let number):
            _ = cvips.g_value_init(&value, Int(CVIPS_TYPE_DOUBLE))
            cvips.g_value_set_double(&value, number)
        case .bool(let flag):
            _ = cvips.g_value_init(&value, Int(CVIPS_TYPE_BOOLEAN))
            cvips.g_value_set_boolean(&value, flag ? 1 : 0)
        case .image(let image):
            _ = cvips.g_value_init(&value, cvips.vips_image_get_type())
            cvips.g_value_set_object(&value, UnsafeMutableRawPointer(image.pointer))
        case .images(let images):
            _ = cvips.g_value_init(&value, cvips.vips_array_image_get_type())
            cvips.vips_value_set_array_image(&value, Int32(images.count))
            var count: Int32 = 0
            guard let slots = cvips.vips_value_get_array_image(&value, &count) else { return false }
            // The array owns a reference to each of its images.
            for (index, image) in images.enumerated() {
                _ = cvips.g_object_ref(UnsafeMutableRawPointer(image.pointer))
                slots[index] = image.pointer
            }
        case .doubles(let numbers):
            _ = cvips.g_value_init(&value, cvips.vips_array_double_get_type())
            cvips.vips_value_set_array_double(&value, numbers, Int32(numbers.count))
        case .bytes, .stored:
            guard let blob = blob(argument) else { return false }
            _ = cvips.g_value_init(&value, cvips.vips_blob_get_type())
            cvips.g_value_set_boxed(&value, UnsafeRawPointer(blob))
            cvips.vips_area_unref(blob)
        }
        cvips.g_object_set_property(operation, name, &value)
        cvips.g_value_unset(&value)
        return true
    }
}

extension VipsCall {
    init(
        _ nickname: String, _ arguments: KeyValuePairs<String, VipsArgument>,
        failure: RenderError.Code = .undecodable
    ) {
        self.init(nickname: nickname, arguments: arguments.map { ($0, $1) }, failure: failure)
    }

    private func blob(_ argument: VipsArgument) -> OpaquePointer? {
        let bytes: UnsafeRawBufferPointer? =
            switch argument {
            case .bytes(let bytes): bytes
            case .stored(let storage): storage.bytes
            default: nil
            }
        guard let bytes, let start = bytes.baseAddress else { return nil }
        return cvips.vips_blob_new(nil, start, bytes.count)
    }
}

// @unchecked Sendable: a saver writes on one thread at a time, and its caller reads only after the saver has returned.
private final class WrittenBytes: @unchecked Sendable {
    private(set) var bytes: [UInt8] = []
    private let control: RenderControl

    init(_ control: RenderControl) { self.control = control }

    /// The write callback. libvips calls it with the bytes and this object.
    static func take(_ start: UnsafeRawPointer, _ count: Int64, _ user: UnsafeMutableRawPointer?) -> Int64 {
        guard let user else { return -1 }
        let written = Unmanaged<WrittenBytes>.fromOpaque(user).takeUnretainedValue()
        if written.control.isStopped { return -1 }
        written.bytes.append(contentsOf: UnsafeRawBufferPointer(start: start, count: Int(count)))
        return count
    }
}

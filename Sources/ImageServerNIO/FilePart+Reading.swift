import ImageServer
import NIOCore
import PipelineSupport

extension ServerResponse.FilePart {
    /// The part as a region that the kernel can send, or nil if the file has become shorter. The caller takes the
    /// descriptor back afterward.
    var region: FileRegion? {
        guard file.isWhole else { return nil }
        return FileRegion(
            fileHandle: NIOFileHandle(_deprecatedTakingOwnershipOfDescriptor: file.descriptor),
            readerIndex: range.lowerBound, endIndex: range.upperBound)
    }
}

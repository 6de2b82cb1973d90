import Glibc
import ImageServer
import NIOCore
import NIOPosix
import PipelineSupport

extension ServerResponse.FilePart {
    /// It, for a kernel that sends it; nil if the file has become shorter. The caller takes the descriptor back afterwards.
    var region: FileRegion? {
        guard file.isWhole else { return nil }
        return FileRegion(
            fileHandle: NIOFileHandle(_deprecatedTakingOwnershipOfDescriptor: file.descriptor),
            readerIndex: range.lowerBound, endIndex: range.upperBound)
    }

    /// Its bytes, for connections that the kernel cannot send a file over: they encrypt it. They are read on a thread for
    /// calls that block; nil if the file has become shorter or cannot be read.
    func bytes(for channel: any Channel) -> EventLoopFuture<ByteBuffer?> {
        let allocator = channel.allocator
        return NIOThreadPool.singleton.runIfActive(eventLoop: channel.eventLoop) {
            var buffer = allocator.buffer(capacity: range.count)
            let count = buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: range.count) { bytes in
                FileIO.fill(.init(rebasing: bytes[..<range.count]), from: file.descriptor, at: range.lowerBound)
            }
            return count == range.count ? buffer : nil
        }
    }
}

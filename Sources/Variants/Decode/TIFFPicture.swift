/// One picture in a TIFF, and the place where libvips finds it.
struct TIFFPicture {
    let directory: TIFFHeader
    /// The number of the directory in the chain, starting at 0.
    let page: Int
    /// The number of the picture among the SubIFDs of that directory, or nil if the directory itself is the picture.
    let subIFD: Int?

    /// The picture at these options of the loader.
    var options: [(String, VipsArgument)] {
        [("page", .int(page))] + (subIFD.map { [("subifd", .int($0))] } ?? [])
    }

    var size: PixelSize? {
        guard let width = directory.value(256), let height = directory.value(257) else { return nil }
        return PixelSize(width: width, height: height)
    }

    var isTiled: Bool { directory.value(322) != nil }

    /// Whether libvips decodes the samples correctly (`TIFFSamples`).
    var isPlain: Bool { TIFFDecoder.refusal(directory) == nil && TIFFSamples(directory) == nil }

    /// Returns the smaller versions of the picture, each with half the edges of the previous version. They are SubIFDs
    /// of the picture, or follow it in the chain as reduced versions (NewSubfileType, TIFF 6.0 §8).
    func levels(in chain: [Int]) -> [TIFFPicture] {
        guard let size, subIFD == nil, isPlain else { return [] }
        let parts = directory.numbers(330, limit: 16).enumerated().map {
            (offset: $0.element, page, index: Int?($0.offset))
        }
        let following = chain.dropFirst(page + 1).prefix(16).prefix {
            directory.isShort($0) && directory.isReduced($0)
        }.enumerated().map {
            (offset: $0.element, page + 1 + $0.offset, index: Int?.none)
        }
        let found = (parts + following).filter { directory.isShort($0.offset) }.map {
            TIFFPicture(directory: directory.at($0.offset), page: $0.1, subIFD: $0.index)
        }
        let sizes = found.map(\.size)
        var levels: [TIFFPicture] = []
        // A version of one pixel has no smaller version.
        while 1 << levels.count < max(size.width, size.height) {
            let factor = 2 << levels.count
            guard let next = found.indices.first(where: { isReduced(to: found[$0], sizes[$0], size, by: factor) })
            else {
                break
            }
            levels.append(found[next])
        }
        return levels
    }

    /// Whether another picture is this picture of the given size, with its edges divided by `factor`.
    private func isReduced(
        to other: TIFFPicture, _ otherSize: PixelSize?, _ size: PixelSize, by factor: Int
    ) -> Bool {
        func isPart(_ part: Int, _ edge: Int) -> Bool {
            part == max(1, edge / factor) || part == (edge + factor - 1) / factor
        }
        guard let part = otherSize, isPart(part.width, size.width), isPart(part.height, size.height), part != size
        else {
            return false
        }
        // BitsPerSample and SamplesPerPixel.
        return [258, 277].allSatisfy { other.directory.value($0) == directory.value($0) } && other.isPlain
    }
}

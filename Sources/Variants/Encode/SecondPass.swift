extension Encoding {
    /// Returns the smallest file that scores at least as high as `first` against the pixels, if it is at least 5 %
    /// smaller. Otherwise returns `first`.
    ///
    /// - Parameter jobs: the outputs to try.
    static func secondPass(
        _ pixels: EncodablePixels, _ jobs: [EncodeJob], replacing first: [UInt8], _ control: RenderControl
    ) throws(RenderError) -> (bytes: [UInt8], format: ImageFormat) {
        let format = try ImageHeader.probe(first).format
        let score = try PictureScore.measured(first, format, against: pixels, control)
        // No quality is certain to reach such a score. A lossless file has a score of 100.
        guard score <= 95 else { return (first, format) }
        let hasChromaDetail = try PixelStatistics(pixels, control).hasChromaDetail
        var best = (bytes: first, format: format)
        for var job in jobs {
            job.hasChromaDetail = hasChromaDetail
            let found = try scored(pixels, job, target: score, isStrict: true)
            if found.score >= score, found.bytes.count < best.bytes.count { best = (found.bytes, job.output.format) }
        }
        return best.bytes.count * 100 <= first.count * 95 ? best : (first, format)
    }
}

extension ResolvedOutput {
    /// Returns the output of a second pass in a format.
    func inSecondPass(as format: ImageFormat) -> ResolvedOutput {
        var output = self
        (output.format, output.mayBeLossless) = (format, false)
        output.effort = format.encoder?.secondEffort ?? effort
        return output
    }
}

/// The elements and attributes that a sanitized SVG keeps (SVG 2, SVG 1.1, Filter Effects 1). Everything else is removed,
/// among it scripts, event handlers, `foreignObject`, links and metadata.
enum SVGNames {
    static let namespace = "http://www.w3.org/2000/svg"
    static let xlink = "http://www.w3.org/1999/xlink"
    static let xml = "http://www.w3.org/XML/1998/namespace"

    static let elements: Set<String> = words(
        """
        a animate animateMotion animateTransform circle clipPath defs desc ellipse feBlend feColorMatrix
        feComponentTransfer feComposite feConvolveMatrix feDiffuseLighting feDisplacementMap feDistantLight feDropShadow
        feFlood feFuncA feFuncB feFuncG feFuncR feGaussianBlur feImage feMerge feMergeNode feMorphology feOffset
        fePointLight feSpecularLighting feSpotLight feTile feTurbulence filter g image line linearGradient marker mask
        mpath path pattern polygon polyline radialGradient rect set stop style svg switch symbol text textPath title
        tspan use view
        """)

    /// The elements that hold only text. An HTML page that contains the SVG would parse their elements as HTML.
    static let texts: Set<String> = ["desc", "style", "title"]

    static let animations: Set<String> = ["animate", "animateMotion", "animateTransform", "set"]

    /// The attributes that are also properties of CSS, so that their values may refer to other files.
    static let properties: Set<String> = words(
        """
        alignment-baseline baseline-shift clip clip-path clip-rule color color-interpolation
        color-interpolation-filters color-rendering cursor direction display dominant-baseline enable-background fill
        fill-opacity fill-rule filter flood-color flood-opacity font font-family font-feature-settings font-kerning
        font-size font-size-adjust font-stretch font-style font-variant font-weight glyph-orientation-horizontal
        glyph-orientation-vertical image-rendering isolation kerning letter-spacing lighting-color marker marker-end
        marker-mid marker-start mask mask-type mix-blend-mode opacity overflow paint-order pointer-events
        shape-rendering stop-color stop-opacity stroke stroke-dasharray stroke-dashoffset stroke-linecap
        stroke-linejoin stroke-miterlimit stroke-opacity stroke-width text-anchor text-decoration text-overflow
        text-rendering transform-origin unicode-bidi vector-effect visibility white-space word-spacing writing-mode
        """)

    /// The attributes of animations that hold values of the animated attribute.
    static let animatedValues: Set<String> = ["by", "from", "to", "values"]

    static let attributes: Set<String> = words(
        """
        accumulate additive amplitude attributeType azimuth baseFrequency baseProfile begin bias calcMode class
        clipPathUnits cx cy d diffuseConstant divisor dur dx dy edgeMode elevation end exponent filterUnits fr fx fy
        gradientTransform gradientUnits height id in in2 intercept k1 k2 k3 k4 kernelMatrix kernelUnitLength keyPoints
        keySplines keyTimes lang lengthAdjust limitingConeAngle markerHeight markerUnits markerWidth maskContentUnits
        maskUnits max media method min mode numOctaves offset operator order orient origin path pathLength
        patternContentUnits patternTransform patternUnits points pointsAtX pointsAtY pointsAtZ preserveAlpha
        preserveAspectRatio primitiveUnits r radius refX refY repeatCount repeatDur requiredExtensions
        requiredFeatures restart result role rotate rx ry scale seed side slope spacing specularConstant
        specularExponent spreadMethod startOffset stdDeviation stitchTiles surfaceScale systemLanguage tableValues
        targetX targetY textLength transform type version viewBox width x x1 x2 xChannelSelector y y1 y2
        yChannelSelector z zoomAndPan
        """)

    private static func words(_ text: String) -> Set<String> { Set(text.split { $0.isWhitespace }.map(String.init)) }
}

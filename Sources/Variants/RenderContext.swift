public struct RenderContext {}

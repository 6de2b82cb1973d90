public struct Picture {}

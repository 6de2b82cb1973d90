public struct RecipeError: Error, Sendable {}

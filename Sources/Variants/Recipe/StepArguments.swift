public struct StepArguments {}

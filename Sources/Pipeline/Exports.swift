/// A program that imports `Pipeline` also sees the types that its interface is made of.
@_exported public import HTTPCaching
@_exported public import PipelineCaching
@_exported public import PipelineFetching
@_exported public import PipelineSupport

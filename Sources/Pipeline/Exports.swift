/// Re-exports the modules that declare the types in the interface of `Pipeline`.
@_exported public import HTTPCaching
@_exported public import PipelineCaching
@_exported public import PipelineFetching
@_exported public import PipelineSupport
@_exported public import Variants

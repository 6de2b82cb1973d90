import ImageServer
import PipelineSupport

extension RequestLog {
    static func console() -> RequestLog {
        RequestLog(
            write: { Console.tell(logLine($0)) },
            reportLost: { Console.error("pipectl: \($0) requests were not logged: stderr is too slow") })
    }

    private static func logLine(_ entry: Entry) -> LogLine {
        LogLine(level: .info, message: line(entry)) { json in
            json.add("client", entry.client)
            json.add("method", entry.request?.method)
            json.add("target", entry.request.map { shown($0.target) })
            json.add("status", entry.answer.status)
            json.add("bytes", entry.answer.bytes)
            json.add("milliseconds", raw: JSONText.thousandths(entry.milliseconds))
            json.add("note", entry.answer.note)
            json.add("format", entry.answer.picture?.format)
            json.add("size", entry.answer.picture?.size)
            json.add("key", entry.answer.picture?.key)
        }
    }
}

import ImageServer
import PipelineSupport

extension RequestLog {
    static func console(_ console: Console) -> RequestLog {
        RequestLog(
            write: { console.writeMessage(logLine($0)) },
            reportLost: { console.error("pipectl: \($0) requests were not logged, because standard error is too slow") }
        )
    }

    private static func logLine(_ entry: Entry) -> LogLine {
        LogLine(level: .info, message: line(entry)) { json in
            let (request, answer) = (entry.request, entry.answer)
            json.add([
                "client": entry.client, "method": request?.method,
                "target": request.map { shown($0.target, answer.route) }, "status": answer.status,
                "bytes": answer.bytes,
                "milliseconds": entry.milliseconds, "note": answer.note, "format": answer.picture?.format,
                "size": answer.picture?.size, "key": answer.picture?.key,
            ])
        }
    }
}

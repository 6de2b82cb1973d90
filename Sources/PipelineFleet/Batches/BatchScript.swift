// A batch in Redis, and the scripts that change it. Each script is atomic. Scripts rather than Swift code decide which
// items to lease and which items are dead, because otherwise another worker could act on the same item between a read
// and a later write.
//
// - `…:items`, a stream of `number`, `payload`. An item stays until it has a result. The item's lease is its pending
//   entry in the consumer group `workers`: consumer, idle time and delivery count. A worker proves that it still holds
//   an item with the consumer and the count, because a takeover changes one of them.
// - `…:results`, a stream of `number`, `kind`, `attempt`, `payload`. A result stays until a submitter acknowledges it.
// - `…:dead`, a stream of `number`, `payload` for operators, limited to the newest `deadLimit` entries.
// - `…:state`, a hash: `format`, `options`, `tries`, `lease` and `keep` (milliseconds), `created`, `submitted`, `total`
//   (after `finish`), `done`, `failed`.

/// A script that runs on the keys of one batch. `XPENDING … IDLE` requires Redis 6.2.
struct BatchScript {
    /// The version of the format described above.
    static let format = 1
    /// The maximum number of dead items to keep. The submitter learns of all dead items through their results, so few
    /// are needed.
    static let deadLimit = 1_000

    let text: String

    private init(_ body: String, isForNew: Bool = false) {
        // The server may evict one key and keep the other, so check both. XDEL leaves an empty stream, so both keys
        // exist until the batch ends.
        let check = """
            if redis.call('EXISTS', items, state) < 2 then return redis.status_reply('GONE') end
            if get('format') ~= \(Self.format) then return redis.status_reply('FORMAT') end
            for _, name in ipairs({'tries', 'lease', 'keep'}) do
                local value = get(name)
                if not (value and value >= 1 and value <= 2^53 and value % 1 == 0) then
                    return redis.status_reply('FORMAT')
                end
            end
            """
        text = """
            local items, results, dead, state = unpack(KEYS)
            local function get(name) return tonumber(redis.call('HGET', state, name)) end
            local function renew()
                local keep = get('keep')
                for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, keep) end
            end
            -- XACK comes first: a server that is out of memory refuses XADD as a script's first write, but not as a
            -- later one. Items could otherwise never leave a full server.
            local function finish(id, number, kind, attempt, payload)
                redis.call('XACK', items, 'workers', id)
                redis.call('XDEL', items, id)
                redis.call('XADD', results, '*', 'number', number, 'kind', kind, 'attempt', attempt, 'payload', payload)
                redis.call('HINCRBY', state, 'done', 1)
                if kind ~= 'success' then redis.call('HINCRBY', state, 'failed', 1) end
                renew()
            end
            local function owns(consumer, id, attempt)
                local row = redis.call('XPENDING', items, 'workers', id, id, 1)[1]
                return row and row[2] == consumer and row[4] == tonumber(attempt)
            end
            \(isForNew ? "" : check)
            \(body)
            """
    }

    /// Creates the batch unless it exists. The arguments are the options, tries, lease and keep.
    static let create = BatchScript(
        """
        if redis.call('EXISTS', state) == 1 then return 0 end
        redis.call('XGROUP', 'CREATE', items, 'workers', '0', 'MKSTREAM')
        redis.call('HSET', state, 'format', \(format), 'options', ARGV[1], 'tries', ARGV[2], 'lease', ARGV[3],
            'keep', ARGV[4], 'created', redis.call('TIME')[1], 'submitted', 0, 'done', 0, 'failed', 0)
        renew()
        return 1
        """, isForNew: true)

    /// Returns the state and the number of results.
    static let state = BatchScript("return {redis.call('HGETALL', state), redis.call('XLEN', results)}")

    /// Postpones the expiry.
    static let touch = BatchScript("renew() return 1")

    /// Adds as many items as the window allows. The arguments are the number of the first item, the window and the
    /// payloads. Returns the previous number of items and the number of added items. The latter is -1 if the number of
    /// the first item is wrong, and -2 if the batch is finished.
    static let submit = BatchScript(
        """
        local submitted = get('submitted')
        if submitted ~= tonumber(ARGV[1]) then return {submitted, -1} end
        if get('total') then return {submitted, -2} end
        local room = tonumber(ARGV[2]) - redis.call('XLEN', items) - redis.call('XLEN', results)
        local count = math.max(0, math.min(room, #ARGV - 2))
        for i = 1, count do
            redis.call('XADD', items, '*', 'number', submitted + i - 1, 'payload', ARGV[i + 2])
        end
        redis.call('HINCRBY', state, 'submitted', count)
        renew()
        return {submitted, count}
        """)

    /// Stores the total if it is correct. The argument is the total. Returns the number of items.
    static let finish = BatchScript(
        """
        if get('submitted') == tonumber(ARGV[1]) then redis.call('HSET', state, 'total', ARGV[1]) end
        renew()
        return get('submitted')
        """)

    /// Leases items: first items with an expired lease, then new items. The arguments are the consumer, the count and
    /// whether the worker holds no items. An item that was leased before may have killed its worker, so it is leased
    /// alone, and the worker gets no other item in the meantime. Each item gets at least two tries, because the first
    /// failure may have been caused by a different item. Returns the lease, the ID of the newest item ever leased, and
    /// pairs of an entry and its delivery count. Returns `COMPLETE` if every item has a result.
    static let take = BatchScript(
        """
        local consumer, count, tries, lease = ARGV[1], tonumber(ARGV[2]), get('tries'), get('lease')
        local taken, waits = {}, false
        -- More rows than items are wanted, or each dead item would keep the others waiting for one more call.
        for _, row in ipairs(redis.call('XPENDING', items, 'workers', 'IDLE', lease, '-', '+', count + 100)) do
            local id, attempt = row[1], row[4]
            local entry = redis.call('XRANGE', items, id, id)[1]
            if not entry then
                -- Another program deleted it.
                redis.call('XACK', items, 'workers', id)
            elseif attempt >= math.max(tries, 2) then
                local number, payload = entry[2][2], entry[2][4]
                finish(id, number, 'dead', attempt, payload)
                redis.call('XADD', dead, 'MAXLEN', \(deadLimit), '*', 'number', number, 'payload', payload)
                renew()
            elseif #taken < count and not waits and (attempt == 0 or (ARGV[3] == '1' and #taken == 0)) then
                redis.call('XCLAIM', items, 'workers', consumer, 0, id)
                table.insert(taken, {entry, attempt + 1})
                waits = attempt > 0
            elseif attempt > 0 then
                waits = true
            end
        end
        if #taken < count and not waits then
            local read = redis.call('XREADGROUP', 'GROUP', 'workers', consumer, 'COUNT', count - #taken,
                'STREAMS', items, '>')
            for _, entry in ipairs(read and read[1][2] or {}) do table.insert(taken, {entry, 1}) end
        end
        -- Only progress keeps a batch alive, not a worker that asks in vain.
        if #taken > 0 then renew() elseif get('total') == get('done') then return redis.status_reply('COMPLETE') end
        local group, newest = redis.call('XINFO', 'GROUPS', items)[1], nil
        for i = 1, #group, 2 do if group[i] == 'last-delivered-id' then newest = group[i + 1] end end
        return {lease, newest, taken}
        """)

    /// Stores an item's result if the worker still holds the item. The arguments are the consumer, entry, attempt,
    /// number, kind and payload.
    static let complete = BatchScript(
        """
        if not owns(ARGV[1], ARGV[2], ARGV[3]) then return 0 end
        finish(ARGV[2], ARGV[4], ARGV[5], ARGV[3], ARGV[6])
        return 1
        """)

    /// Restarts an item's lease if the worker still holds the item. The arguments are the consumer, entry and attempt.
    /// JUSTID leaves the delivery count unchanged.
    static let extend = BatchScript(
        """
        if not owns(ARGV[1], ARGV[2], ARGV[3]) then return 0 end
        redis.call('XCLAIM', items, 'workers', ARGV[1], 0, ARGV[2], 'JUSTID')
        return 1
        """)

    /// Ends an item's lease and decrements its delivery count if the worker still holds the item. The arguments are the
    /// consumer, entry and attempt.
    static let release = BatchScript(
        """
        if not owns(ARGV[1], ARGV[2], ARGV[3]) then return 0 end
        redis.call('XCLAIM', items, 'workers', ARGV[1], 0, ARGV[2], 'IDLE', get('lease'), 'RETRYCOUNT', ARGV[3] - 1,
            'JUSTID')
        return 1
        """)
}

extension RedisConnection {
    /// Runs a script for several batches, each with its arguments, in one round trip.
    ///
    /// - Returns: an integer, an array, the status `COMPLETE` or an error for each batch.
    func run(
        _ script: BatchScript, _ calls: [(batch: BatchID, arguments: [RedisWord])]
    ) async throws(BatchError) -> [Result<RedisReply, BatchError>] {
        let replies = try await batch(
            calls.map { ["EVAL", RedisWord(script.text), "4"] + $0.batch.keys + $0.arguments })
        return zip(calls, replies).map { call, reply in
            switch reply {
            case .integer, .array, .status("COMPLETE"): .success(reply)
            case .status("GONE"): .failure(.gone(call.batch))
            case .status("FORMAT"): .failure(.unknownFormat(call.batch))
            // The stream was evicted, and another client has created it again.
            case .error(let text) where text.hasPrefix("NOGROUP"): .failure(.gone(call.batch))
            default: .failure(failure(reply))
            }
        }
    }

    func run(
        _ script: BatchScript, _ batch: BatchID, _ arguments: [RedisWord] = []
    ) async throws(BatchError) -> RedisReply {
        try await run(script, [(batch, arguments)])[0].get()
    }

    /// Sends commands like `send`, but throws `BatchError`.
    func batch(_ commands: [[RedisWord]], timeoutSeconds: Double? = nil) async throws(BatchError) -> [RedisReply] {
        do { return try await send(commands, timeoutSeconds: timeoutSeconds) } catch { throw .redis(error) }
    }

    func state(of batch: BatchID) async throws(BatchError) -> BatchState {
        let reply = try await run(.state, batch)
        guard let state = BatchState(reply) else { throw failure(reply) }
        return state
    }

    /// Returns the error for an unexpected reply as a `BatchError`.
    func failure(_ reply: RedisReply) -> BatchError {
        guard case .error(let text) = reply else { return .redis(unexpected(reply)) }
        let words = text.lowercased()
        let isUnknown = words.contains("unknown") && words.contains("command")
        return isUnknown ? .serverTooOld(unexpected(reply)) : .redis(unexpected(reply))
    }

    /// Reads the entries that follow the given entry of each stream. Returns `.null` if no entry arrived in time.
    func read(
        _ streams: [(key: RedisWord, last: RedisWord)], count: Int, blockSeconds: Double, timeoutSeconds: Double
    ) async throws(BatchError) -> RedisReply {
        let seconds = min(max(blockSeconds, 0), 86_400)
        // `BLOCK 0` would wait forever.
        let block = seconds > 0 ? ["BLOCK", RedisWord(Int(max(seconds * 1000, 1)))] : []
        let reply = try await batch(
            [["XREAD", "COUNT", RedisWord(count)] + block + ["STREAMS"] + streams.map(\.key) + streams.map(\.last)],
            timeoutSeconds: timeoutSeconds + seconds)[0]
        guard reply == .null || reply.elements != nil else { throw failure(reply) }
        return reply
    }
}

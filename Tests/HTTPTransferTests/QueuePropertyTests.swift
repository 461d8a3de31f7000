import HTTPTransfer
import SeededRandom
import Testing

extension TransferTests {
  /// ``QueueState`` under random operations, checked against the properties of every queue.
  @Suite struct QueueProperties {
    private typealias State = QueueState<Int>

    /// The state of the transfers after the actions so far, as their owner sees it.
    private struct Model {
      var running: Set<Int> = []
      var begun: Set<Int> = []
      var ended: Set<Int> = []
      var hosts: [Int: String] = [:]

      mutating func carryOut(_ actions: [State.Action], _ seed: UInt64) {
        for action in actions {
          switch action {
          case .begin(let id):
            #expect(begun.insert(id).inserted, "seed \(seed): \(id) begun twice")
            #expect(running.insert(id).inserted, "seed \(seed)")
            #expect(!ended.contains(id), "seed \(seed)")
          case .proceed(let id):
            #expect(running.insert(id).inserted, "seed \(seed): \(id) runs already")
            #expect(!ended.contains(id), "seed \(seed)")
          case .hold(let id):
            #expect(running.remove(id) != nil, "seed \(seed): \(id) does not run")
          }
        }
      }
    }

    @Test("Limits are kept, nothing is lost, and no place stays free that somebody could use")
    func random() {
      for seed in UInt64(1)...300 {
        var generator = SeededGenerator(seed: seed)
        let limit = Int.random(in: 1...4, using: &generator)
        let hostLimit =
          Bool.random(using: &generator) ? Int.random(in: 1...3, using: &generator) : nil
        var state = State(maximumConcurrent: limit, maximumPerHost: hostLimit)
        var model = Model()
        var paused: Set<Int> = []
        var isSuspended = true
        for step in 0..<120 {
          let id = Int.random(in: 0..<max(1, model.hosts.count), using: &generator)
          let exists = model.hosts[id] != nil && !model.ended.contains(id)
          let actions: [State.Action]
          switch Int.random(in: 0..<12, using: &generator) {
          case 0...3:
            let new = model.hosts.count
            let host = "host\(Int.random(in: 0..<3, using: &generator))"
            model.hosts[new] = host
            actions = state.add(
              new, host: host, priority: Int.random(in: -2...2, using: &generator))
          case 4:
            actions = state.suspend()
            isSuspended = true
          case 5, 6:
            actions = state.start()
            isSuspended = false
          case 7:
            actions = state.pause(id)
            if exists { paused.insert(id) }
          case 8:
            actions = state.resume(id)
            paused.remove(id)
          default:
            // Only existing transfers can end, running or cancelled.
            guard exists else { continue }
            model.ended.insert(id)
            model.running.remove(id)
            paused.remove(id)
            actions = state.end(id)
          }
          model.carryOut(actions, seed)
          check(
            state, model, paused, isSuspended, limit: limit, hostLimit: hostLimit,
            "seed \(seed), step \(step)")
        }
        // After any history, all transfers can end.
        model.carryOut(state.start(), seed)
        for id in paused.sorted() { model.carryOut(state.resume(id), seed) }
        while let id = model.running.min() {
          model.running.remove(id)
          model.ended.insert(id)
          model.carryOut(state.end(id), seed)
        }
        #expect(state.isFinished, "seed \(seed)")
        #expect(model.ended.count == model.hosts.count, "seed \(seed): lost")
      }
    }

    private func check(
      _ state: State, _ model: Model, _ paused: Set<Int>, _ isSuspended: Bool, limit: Int,
      hostLimit: Int?, _ place: Comment
    ) {
      #expect(state.isSuspended == isSuspended, place)
      #expect(state.items.count == model.hosts.count, place)
      #expect(state.isFinished == (model.ended.count == model.hosts.count), place)
      let running = Set(state.items.lazy.filter { $0.phase == .running }.map(\.id))
      #expect(running == model.running, place)
      #expect(running.count <= limit, place)
      #expect(running.isDisjoint(with: paused), place)
      if isSuspended { #expect(running.isEmpty, place) }
      let perHost = Dictionary(grouping: running) { model.hosts[$0] ?? "" }.mapValues(\.count)
      #expect(perHost.values.allSatisfy { $0 <= hostLimit ?? .max }, place)
      guard !isSuspended, running.count < limit else { return }
      // A transfer that waits although a place is free waits for its host.
      let waiting = model.hosts.filter {
        !running.contains($0.key) && !model.ended.contains($0.key) && !paused.contains($0.key)
      }
      #expect(waiting.values.allSatisfy { perHost[$0, default: 0] >= hostLimit ?? .max }, place)
    }

    @Test("What was interrupted goes on before anything new, and ties go by age")
    func order() {
      var state = State(maximumConcurrent: 1, maximumPerHost: nil)
      _ = state.add(1, host: "a", priority: 0)
      _ = state.add(2, host: "a", priority: 9)
      _ = state.add(3, host: "a", priority: 9)
      #expect(state.start() == [.begin(2)])
      #expect(state.pause(2) == [.hold(2), .begin(3)])
      #expect(state.resume(2) == [])
      #expect(state.end(3) == [.proceed(2)])
      #expect(state.end(2) == [.begin(1)])
    }

    @Test("Names that are unknown, or have ended, change nothing")
    func unknown() {
      var state = State(maximumConcurrent: 1, maximumPerHost: nil)
      _ = state.add(1, host: "a", priority: 0)
      #expect(state.pause(7) == [] && state.resume(7) == [] && state.end(7) == [])
      #expect(state.start() == [.begin(1)])
      _ = state.end(1)
      #expect(state.pause(1) == [] && state.resume(1) == [])
      #expect(state.isFinished)
      state.removeEnded()
      #expect(state.items.isEmpty)
    }
  }
}

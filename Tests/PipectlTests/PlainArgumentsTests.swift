import ArgumentParser
import Testing

@testable import pipectl

struct PlainArgumentsTests {
    @Test(arguments: [
        "get a.jpg",
        "get https://example.org/a.jpg -r thumbnail:300x300,webp -o out.webp",
        "get --recipe blur:2 a.jpg --output out/a.jpg --json",
        "get -o a --cache folder --config c.yaml a.jpg -q -v --policy cacheOnly",
        "get a.jpg --set fetch.slots=8 --set retries=0 --quiet --verbose",
        "get cache --policy reload",
        "get get -r get -o stats",
        "cache stats",
        "cache stats --json --cache folder",
        "cache stats -q --set a=b --config c.yaml --set c=d",
    ])
    func `a plain line is read as ArgumentParser reads it`(line: String) throws {
        let words = line.split(separator: " ").map(String.init)
        let plain = try #require(PlainArguments.command(words))
        #expect("\(plain)" == "\(try Pipectl.parseAsRoot(words))")
    }

    @Test(arguments: [
        [], ["get"], ["get", ""], ["get", "-"], ["get", "a", "b"], ["get", "a", "-o", "-"], ["get", "a", "-o"],
        ["get", "a", "-r", ""], ["get", "a", "-r", "-x"], ["get", "a", "-ra"], ["get", "a", "--recipe=b"],
        ["get", "a", "-r", "b", "--recipe", "c"], ["get", "a", "--json", "--json"], ["get", "a", "--policy", "never"],
        ["get", "a", "--unknown"], ["get", "a", "-qv"], ["get", "--", "a"], ["get", "a", "--help"], ["get", "-h"],
        ["get", "a", "--version"], ["get", "a", "--set"], ["get", "a", "--set", "-b"], ["get", "a", "--no-json"],
        ["cache"], ["cache", "stats", "a"], ["cache", "stats", "--help"], ["cache", "stats", "--json", "--json"],
        ["cache", "list"], ["--json", "get", "a"], ["info", "a"], ["help", "get"], ["--version"], ["serve"],
    ])
    func `everything else is left to ArgumentParser`(words: [String]) {
        #expect(PlainArguments.command(words) == nil)
    }
}

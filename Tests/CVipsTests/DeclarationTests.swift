import CVipsCheck
import Testing

@Test func `every declaration of CVips agrees with the headers of libvips`() {
    #expect(cvips_checked_declarations() > 40)
}

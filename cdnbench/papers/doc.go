// Package papers holds the experiments of the papers that the project grew
// from, in virtual time: congestion control on one bottleneck with the code
// that ships. Each scenario says what of it was fitted to a paper.
package papers

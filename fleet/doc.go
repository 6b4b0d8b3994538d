// Package fleet is the operator's side of muster: what is pushed to whom, how
// far the nodes have come with it, requests that many nodes answer at once, and
// how all of that reads. What it needs of NATS stands in small interfaces.
package fleet

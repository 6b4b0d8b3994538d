package resource

// Domain is a part of the machine that states describe and changes change. A
// change makes every state of its domains old; domains are combined with |.
type Domain uint8

// The domains.
const (
	Paths Domain = 1 << iota
	Packages
	Units
	Accounts
	// Everything is what a command that anyone may name can change.
	Everything Domain = 0xff
)

// Overlaps says that the two have a domain in common.
func (d Domain) Overlaps(other Domain) bool { return d&other != 0 }

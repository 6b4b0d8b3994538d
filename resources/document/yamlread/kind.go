package yamlread

// Kind is the shape of a value.
type Kind uint8

// The kinds. A scalar keeps the text as it was written, whatever YAML would
// have made of it: mode: 0644 and ensure: 1.10 stay what the author wrote.
const (
	Null Kind = iota
	Bool
	Number
	String
	List
	Map
)

// String names the kind as users know it.
func (k Kind) String() string {
	return [...]string{"nothing", "a boolean", "a number", "a string", "a list", "a mapping"}[k]
}

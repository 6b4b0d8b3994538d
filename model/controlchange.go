package model

// ControlChange is one revision of what operators wrote about a node or a group.
type ControlChange struct {
	Entry
	// By is who wrote it, as they say; empty where they did not.
	By string `json:"by,omitempty"`
}

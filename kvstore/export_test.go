package kvstore

// Bounded returns a bucket that reads of as many nodes.
func Bounded(b Nodes, most int) Nodes {
	b.most = most

	return b
}

package nodes

// Bounded returns a bucket that reads of as many nodes.
func Bounded(b Bucket, most int) Bucket {
	b.most = most

	return b
}

// Package kvstore contains the names of all buckets, streams, keys and subjects of a fleet on NATS,
// and reads and writes them. Each bucket and stream has a small type, such as Assignments or Reports,
// on top of Store. Only this package and those below it use JetStream.
package kvstore

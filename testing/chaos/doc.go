// Package chaos holds the tests that break what an agent needs, while files drift and
// manifests change: processes are killed, networks swallow one direction, disks are full.
// After each fault one judge looks at everything that must hold then.
//
// `go test` runs one round in a short form, without the cluster. MUSTER_CHAOS=50 runs so many in a row, in
// the long form (`just chaos`). All random choices come from a seed, which is the name of
// the round; MUSTER_CHAOS_SEED gives it again.
package chaos

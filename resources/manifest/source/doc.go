// Package source fetches documents and bundles from paths, standard input, buckets and servers.
package source

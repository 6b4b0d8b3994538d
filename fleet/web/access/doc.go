// Package access decides who may read or change a fleet over HTTP: by tokens from a file, or by OpenID Connect. By
// default only this machine can connect, to read. It also keeps other web sites from using the browser of a user who
// signed in.
package access

// Package access decides who may see a fleet over HTTP and who may change something: by tokens
// from a file, or by OpenID Connect. By default only this machine can connect, to read. It also
// keeps other web sites from using the browser of somebody who may.
package access

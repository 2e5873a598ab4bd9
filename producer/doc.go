// Package producer is the publishing side without I/O: a responder that turns
// each Interest into a segment, into metadata, into an application Nack, or
// into nothing for now. It signs when asked and not before, so that content
// of any size is served from its first second in constant memory.
//
// Names follow the naming conventions (rev. 3) and Realtime Data Retrieval:
//
//	/<name>/v=<version>/seg=<n>          content, FinalBlockId as soon as known
//	/<name>/32=metadata                  discovery (CanBePrefix, MustBeFresh)
//	/<name>/32=metadata/v=<n>/seg=0      its answer
//	/<name>/32=ls/…                      the same for the listing of a directory
//
// The metadata is that of ndn6-file-server with two fields of our own, which
// others ignore: the start of the content and the SHA-256 of all of it.
//
// The content lies behind Store and Object, which the packages below this one
// implement: store (files, directories, standard input), sign (signers) and
// serve (the driver with the sockets).
package producer

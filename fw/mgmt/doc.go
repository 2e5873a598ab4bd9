// Package mgmt is the server's side of the NFD management protocol: it answers
// at the forwarder's internal face the commands, datasets and event streams
// of /localhost/nfd and, where the configuration allows it, the route
// registrations of /localhop/nfd, and tells the routing daemon at
// /localhost/nlsr of the routes that applications registered.
//
// Nothing of it runs on the path of a packet. Requests are worked off one
// after another, in the order they arrived, on the goroutine of the internal
// face; only what may have to wait for others does so elsewhere: the creation
// of a face, and the fetching of certificates. Events of the forwarder are queued by whoever caused
// them and published by the server's one other goroutine (Run).
//
// # What a request meets
//
// A command must be signed, in elements of its own under the right parameters
// digest or in its name, a rule of the policy must allow its module from its face
// with its signature, and it must not be a replay; otherwise the answer is 403 and the reason goes to the
// Refused hook. Datasets may be read by every local face.
//
// A command whose key may be certified by a trust anchor waits aside until the
// certificates have been fetched through the forwarder (chains), along the routes
// or from the face that the command came by, and is then
// executed by the goroutine that fetched them. So do prefix announcements.
//
// A dataset is encoded once per discovery, kept for half a minute and cut into
// segments as they are asked for. An unchanged table is not encoded again.
package mgmt

// Package place chooses machines for a cluster among those that fit: packed
// into few racks, spread over many, or anyhow; of one class unless the request
// says mixed; always from one provider, since no message network crosses two.
//
// It is pure and deterministic: ties are broken by a hash seeded with the
// cluster ID, never by the order of the input.
package place

package faultfs

const (
	sectorBytes = 512  // what a disk writes whole or not at all
	pageBytes   = 4096 // unit of sharing between images; nothing else depends on it
)

// image is the contents of a file: a size and pages, nil standing for zeros.
// Pages are shared between an image and its clones until one of them writes, so
// that cloning a disk after every operation costs pointers and not bytes.
type image struct {
	size  int64
	pages []*page
	tag   *int // pages with this tag are this image's alone
}

type page struct {
	tag *int
	b   [pageBytes]byte
}

var zeroPage [pageBytes]byte

func newImage() *image { return &image{tag: new(int)} }

// clone returns an equal image. Both lose the ownership of their pages.
func (m *image) clone() *image {
	m.tag = new(int)
	return &image{size: m.size, pages: append([]*page(nil), m.pages...), tag: new(int)}
}

// page returns a page that may be written.
func (m *image) page(i int) *page {
	p := m.pages[i]
	switch {
	case p == nil:
		p = &page{tag: m.tag}
	case p.tag != m.tag:
		p = &page{tag: m.tag, b: p.b}
	}
	m.pages[i] = p
	return p
}

// view returns page i for reading.
func (m *image) view(i int) *[pageBytes]byte {
	if i >= len(m.pages) || m.pages[i] == nil {
		return &zeroPage
	}
	return &m.pages[i].b
}

// read copies from off what there is and returns how much that was.
func (m *image) read(p []byte, off int64) int {
	if off >= m.size {
		return 0
	}
	p = p[:min(int64(len(p)), m.size-off)]
	for n := 0; n < len(p); {
		at := off + int64(n)
		n += copy(p[n:], m.view(int(at / pageBytes))[at%pageBytes:])
	}
	return len(p)
}

// write puts data at off, growing the image as needed. data == nil stands for n zeros.
func (m *image) write(data []byte, off, n int64) {
	m.grow(off + n)
	for done := int64(0); done < n; {
		at := off + done
		i, skip := int(at/pageBytes), at%pageBytes
		part := min(n-done, pageBytes-skip)
		switch {
		case data != nil:
			copy(m.page(i).b[skip:skip+part], data[done:])
		case m.pages[i] == nil: // zeros already
		case part == pageBytes:
			m.pages[i] = nil
		default:
			clear(m.page(i).b[skip : skip+part])
		}
		done += part
	}
}

func (m *image) grow(size int64) {
	if size <= m.size {
		return
	}
	m.size = size
	if need := int((size + pageBytes - 1) / pageBytes); need > len(m.pages) {
		m.pages = append(m.pages, make([]*page, need-len(m.pages))...)
	}
}

// resize cuts the image, or extends it with zeros.
func (m *image) resize(size int64) {
	if size >= m.size {
		m.grow(size)
		return
	}
	m.size = size
	m.pages = m.pages[:(size+pageBytes-1)/pageBytes]
	if rest := size % pageBytes; rest != 0 && m.pages[len(m.pages)-1] != nil {
		clear(m.page(len(m.pages) - 1).b[rest:]) // what a later growth must find as zeros
	}
}

// bytes returns a copy of everything.
func (m *image) bytes() []byte {
	b := make([]byte, m.size)
	m.read(b, 0)
	return b
}

// Names the server to Streamlit's page. Opened at the address of a page, it would first look for the server below that
// address, and the browser would log both answers as errors.
window.__streamlit = { BACKEND_BASE_URL: new URL(".", location.href).href };

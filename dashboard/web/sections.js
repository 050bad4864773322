// On a narrow screen Streamlit lists the pages in the sidebar, where a section stands in the list of all pages although
// it is no item of it. Each section becomes a list of its own.
{
  const LIST = '[data-testid="stSidebarNavItems"]';
  const name = () => {
    for (const list of document.querySelectorAll(`${LIST}:not([role])`)) list.role = "presentation";
    for (const section of document.querySelectorAll(`${LIST} > div:not([role])`)) {
      section.role = "list";
      section.ariaLabel = section.firstElementChild.innerText;
    }
  };
  addEventListener("DOMContentLoaded", () => new MutationObserver(name).observe(document.body, { childList: true, subtree: true }));
}

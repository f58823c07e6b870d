// SPDX-License-Identifier: Apache-2.0


// Measures a page in the browser and adds the result as JSON to the page around
// it. check.py inserts this script at the end of the page and evaluates
// the result. A frame knows its width and colour scheme only when the page
// around it has been laid out, so it is measured when that has loaded.
parent.addEventListener('load', () => {
  parent.document.body.getBoundingClientRect();
  for (const folded of document.querySelectorAll('details')) {
    folded.open = true;
  }
  const dark = matchMedia('(prefers-color-scheme: dark)').matches;
  const elements = [...document.body.querySelectorAll('*')].filter(
    element => element.getClientRects().length > 0);

  const named = element => {
    const kind = element.getAttribute('class');
    const text = (element.textContent || '').trim().slice(0, 40);
    return `<${element.tagName.toLowerCase()}${kind ? ` ${kind}` : ''}>`
      + ` ${text.replace(/\s+/g, ' ')}`;
  };

  // An element that scrolls may contain elements wider than the window.
  const scrolls = element => {
    for (let up = element.parentElement; up; up = up.parentElement) {
      if (up !== document.body && up !== document.documentElement
          && /auto|scroll/.test(getComputedStyle(up).overflowX)) {
        return true;
      }
    }
    return false;
  };
  const wide = elements.filter(element => {
    const box = element.getBoundingClientRect();
    return (box.right > innerWidth + 1 || box.left < -1) && !scrolls(element);
  }).map(named);

  // A verdict must be whole: inside the window and all that cuts it off.
  const cut = elements.filter(element => {
    if (!element.classList.contains('word')) {
      return false;
    }
    const box = element.getBoundingClientRect();
    const edges = [[0, innerWidth]];
    for (let up = element.parentElement; up; up = up.parentElement) {
      if (getComputedStyle(up).overflowX !== 'visible') {
        const outer = up.getBoundingClientRect();
        edges.push([outer.left, outer.right]);
      }
    }
    return edges.some(
      ([left, right]) => box.left < left - 1 || box.right > right + 1);
  }).map(named);

  // What a screen reader needs.
  const unnamed = [...document.querySelectorAll(
    'table:not(:has(> caption)), th:not([scope]), svg:not([aria-label]), '
    + 'section:not([aria-labelledby])')].map(named);
  const ids = [...document.querySelectorAll('[id]')].map(({ id }) => id);
  const lost = [
    ...ids.filter((id, number) => ids.indexOf(id) !== number),
    ...[...document.querySelectorAll('a[href^="#"]')].map(
      link => link.getAttribute('href').slice(1)).filter(
      id => !ids.includes(id)),
  ];

  // Contrast ratio as WCAG 2 defines it, from 1 to 21.
  const rgba = text => {
    const parts = (text.match(/[\d.]+/g) || []).map(Number);
    return parts.length === 3 ? [...parts, 1] : parts;
  };
  const light = colour => {
    const [red, green, blue] = colour.map(part => part / 255).map(
      part => (part <= 0.03928 ? part / 12.92
        : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const behind = element => {
    for (let up = element; up; up = up.parentElement) {
      const colour = rgba(getComputedStyle(up).backgroundColor);
      if (colour.length === 4 && colour[3] === 1) {
        return colour;
      }
    }
    return [255, 255, 255, 1];
  };
  const faint = [];
  for (const element of elements) {
    const own = [...element.childNodes].some(
      node => node.nodeType === 3 && node.data.trim());
    if (own) {
      const style = getComputedStyle(element);
      const ink = rgba(element.closest('svg') ? style.fill : style.color);
      const pair = [light(ink), light(behind(element))].sort(
        (first, second) => second - first);
      const contrast = (pair[0] + 0.05) / (pair[1] + 0.05);
      if (!(contrast >= 4.5) || ink[3] !== 1) {
        faint.push(`${contrast.toFixed(1)} ${named(element)}`);
      }
    }
  }

  const rows = [];
  for (const body of document.querySelectorAll('tbody')) {
    let group = '';
    for (const row of body.rows) {
      const cells = [...row.cells].map(
        cell => cell.innerText.replace(/\s+/g, ' ').trim());
      if (cells.length === 1) {
        [group] = cells;
      } else {
        // Rows of message sizes share the drawing of their figure.
        const word = row.querySelector('.word');
        const chart = row.querySelector('svg')
          || (row.closest('figure') || row).querySelector('svg');
        rows.push({
          group: row.dataset.group || group,
          figure: row.dataset.figure || cells[0],
          word: (word?.lastChild?.textContent || '').trim(),
          chart: Boolean(chart) && chart.getBoundingClientRect().width > 0
            && chart.children.length > 1,
        });
      }
    }
  }

  const refers = [];
  for (const element of document.querySelectorAll('*')) {
    for (const name of ['src', 'srcset', 'href', 'xlink:href', 'data',
      'poster', 'action', 'background']) {
      const value = element.getAttribute(name);
      if (value && !/^(#|data:)/.test(value)) {
        refers.push(`${name}=${value}`);
      }
    }
  }

  const result = parent.document.createElement('pre');
  result.className = 'measured';
  result.textContent = JSON.stringify({
    dark, wide, cut, unnamed, lost, faint, rows, refers, width: innerWidth,
    content: document.documentElement.scrollWidth,
    fetched: performance.getEntriesByType('resource').map(entry => entry.name),
    scripts: document.scripts.length - 1,
  });
  parent.document.body.append(result);
});

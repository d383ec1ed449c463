import type {
  BuildOrigin,
  MaterialRecord,
  PackagesRecord,
  Proof,
} from '../attestation/origin/origin-record.ts';
import { counted } from '../terms/units.ts';
import { type Html, html } from './html.ts';

/** Maximum number of packages per kind of change on the page. The API has all. */
const MAX_PACKAGES = 500;

/** Formats the state of a proof, with the reason and the key. */
export function proofText({ state, reason, 'key-id': keyId, 'key-file': file }: Omit<Proof, 'links'>): Html {
  return html`<span class="badge ${state}">${state}</span> <span>${reason}</span>
${keyId !== null && html`<span class="quiet id" title="${keyId}">key ${keyId.slice(0, 12)} in ${file}</span>`}`;
}

/**
 * Renders the origin of a build: its proof, its materials, and the changed packages.
 *
 * @param hasProof false to leave the proof out
 */
export function buildOrigin(origin: BuildOrigin, hasProof = true): Html {
  const { proof, builder, materials, packages } = origin;
  return html`<section aria-labelledby="origin"><h2 id="origin">Origin</h2>
<dl>${hasProof && html`<dt>Proof</dt><dd>${proofText(proof)}</dd>`}
${builder !== null && html`<dt>Built by</dt><dd>${builder}</dd>`}</dl>
<p><a href="/api/v1/builds/${encodeURIComponent(origin['image-id'])}/origin">The whole origin in the API</a></p>
${
  materials.length > 0 &&
  html`<details><summary>${counted(materials.length, 'material')}</summary>
<ul class="records card">${materials.map(materialItem)}</ul></details>`
}
${packageChanges(packages)}</section>`;
}

function materialItem({ name, uri, digests, facts }: MaterialRecord): Html {
  return html`<li><span>${name}</span>${uri !== null && html`<span class="id quiet">${uri}</span>`}
${digests.map((digest) => html`<span class="id quiet">${digest}</span>`)}
${facts.length > 0 && html`<span class="detail quiet">${facts.join(', ')}</span>`}</li>`;
}

function packageChanges(packages: PackagesRecord): Html {
  const { count, reason, added, removed, changed, 'compared-with': before } = packages;
  const known = count === null ? 'Packages' : counted(count, 'package');
  if (before === null) return html`<p class="quiet">${known}: ${reason}</p>`;
  const changes = [
    ...added.slice(0, MAX_PACKAGES).map((one) => packageItem('added', one, one.version)),
    ...removed.slice(0, MAX_PACKAGES).map((one) => packageItem('removed', one, one.version)),
    ...changed
      .slice(0, MAX_PACKAGES)
      .map((one) => packageItem('changed', one, `${one.before} → ${one.after}`)),
  ];
  const total = added.length + removed.length + changed.length;
  const counts = `${added.length} added, ${removed.length} removed, ${changed.length} changed`;
  const since = html`since <a class="id" href="/builds/${encodeURIComponent(before)}">${before}</a>`;
  if (total === 0) return html`<p>${known}; nothing changed ${since}</p>`;
  return html`<p>${known}; ${counts} ${since}</p>
<details><summary>${counted(total, 'changed package')}</summary>
<ul class="records card">${changes}</ul></details>
${total > changes.length && html`<p class="quiet">The API has ${total - changes.length} more.</p>`}`;
}

function packageItem(
  change: string,
  { name, architecture }: PackagesRecord['added'][number] | PackagesRecord['changed'][number],
  versions: string,
): Html {
  return html`<li><span class="badge">${change}</span>
<span class="id">${name}${architecture !== null && html` <span class="quiet">${architecture}</span>`}</span>
<span class="id quiet">${versions}</span></li>`;
}

/** Renders the chain of an upload back to its build, the last link first. */
export function uploadOrigin(proof: Proof): Html {
  const links = proof.links.map(
    (link) => html`<li>${proofText(link)}
<span class="detail quiet">${link.kind}: ${link.subject}</span></li>`,
  );
  return html`<section aria-labelledby="origin"><h2 id="origin">Origin</h2>
<p>${proofText(proof)}</p>
${links.length > 0 && html`<ol class="records card">${links}</ol>`}</section>`;
}

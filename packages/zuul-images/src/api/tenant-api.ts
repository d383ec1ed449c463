import { objectOf, TEXT } from '@nodepool-builder/image-builder/internal';
import { CloudError, JsonReader } from '@nodepool-builder/image-builder/plugin';
import type { ApiUrl } from './api-url.ts';

/** Maximum number of tenants in a message. */
const MAX_NAMES = 10;

const INFO = new JsonReader(objectOf({ info: objectOf({}, { tenant: { type: ['string', 'null'] } }) }));

const TENANTS = new JsonReader({ type: 'array', items: objectOf({ name: TEXT }) });

/** Sends a GET and reads its response with `read`, whose errors name the invalid field. */
type Get = <T>(url: URL, read: (value: unknown) => T) => Promise<T>;

/**
 * Returns the base URL of a tenant's API, with a trailing slash. An API that is white-labelled for one tenant names it
 * in its `info`. If the URL names no tenant, the API must have exactly one.
 *
 * @throws CloudError `invalid-settings` if the tenant is ambiguous, or the API serves another; and those of the requests
 */
export async function tenantApiUrl(get: Get, { root, tenant }: ApiUrl): Promise<string> {
  const { info } = await get(new URL('api/info', root), (value) => INFO.check(value));
  const served = info.tenant ?? undefined;
  if (served === undefined) {
    const name = tenant ?? (await onlyTenant(get, root));
    return `${root}api/tenant/${encodeURIComponent(name)}/`;
  }
  if (tenant === undefined || tenant === served) return `${root}api/`;
  throw new CloudError(
    'invalid-settings',
    `Zuul API ${root}: it serves only the tenant "${served}", not "${tenant}"; correct api-url`,
  );
}

async function onlyTenant(get: Get, root: string): Promise<string> {
  const url = new URL('api/tenants', root);
  const tenants = await get(url, (value) => TENANTS.check(value)).catch((error: unknown) => {
    // Without access to the list, the tenant's own API may still be accessible.
    if (error instanceof CloudError && (error.status === 401 || error.status === 403)) return [];
    throw error;
  });
  const names = tenants.map(({ name }) => name);
  const [only] = names;
  if (only !== undefined && names.length === 1) return only;
  const known = names.length === 0 ? '' : ` (${names.slice(0, MAX_NAMES).join(', ')})`;
  const remedy = `write the tenant into api-url: ${root}t/TENANT${known}`;
  throw new CloudError(
    'invalid-settings',
    `Zuul API ${root}: it serves several tenants, and api-url names none; ${remedy}`,
  );
}

import { CloudError } from '@nodepool-builder/image-builder/plugin';

/** Parts of an `api-url`. */
export interface ApiUrl {
  /** Address of Zuul with a trailing slash, the base of `api/info`. */
  readonly root: string;
  /** The tenant, if the URL names one. */
  readonly tenant?: string;
}

/** Paths below the root: of the documented API, and of pages in a browser. */
const BELOW_ROOT = /\/(?:api\/?|api\/tenant\/(?<api>[^/]+)(?:\/.*)?|t\/(?<page>[^/]+)(?:\/.*)?)$/;

/**
 * Parses an `api-url` in any of its forms: the address of Zuul (`https://host/`, `https://host/zuul/`), of its API
 * (`https://host/api`), of a tenant's API (`https://host/api/tenant/example`), or of a page of a tenant
 * (`https://host/t/example/builds`).
 *
 * @throws CloudError `invalid-settings`
 */
export function parseApiUrl(text: string): ApiUrl {
  const url = URL.parse(text);
  if (url === null || !['http:', 'https:'].includes(url.protocol)) {
    throw invalid('it is not an http or https URL; write it as https://zuul.example.com/');
  }
  if (url.username !== '' || url.password !== '') {
    throw invalid('it contains a user name or a password; remove them, and configure auth instead');
  }
  const match = BELOW_ROOT.exec(url.pathname);
  const path = url.pathname.slice(0, match?.index);
  const tenant = match?.groups?.api ?? match?.groups?.page;
  return {
    root: `${url.origin}${path.replace(/(?<!\/)\/*$/, '/')}`,
    ...(tenant !== undefined && { tenant: decode(tenant) }),
  };
}

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch (cause) {
    throw invalid('the percent-encoding of its tenant is invalid; correct it', cause);
  }
}

/** The message does not contain the URL, which may contain a password. */
function invalid(reason: string, cause?: unknown): CloudError {
  return new CloudError('invalid-settings', `api-url cannot be used: ${reason}`, { cause });
}

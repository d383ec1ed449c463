import { ZuulError } from './zuul-error.ts';

/** What an `api-url` says. */
export interface ApiUrl {
  /** Where Zuul is served, with a slash at the end: `api/info` lies below it. */
  readonly root: string;
  /** The tenant, if the URL names one. */
  readonly tenant?: string;
}

/** What a browser shows, or the documentation of the API: all of it below the root is left out. */
const BELOW_ROOT = /\/(?:api\/?|api\/tenant\/(?<api>[^/]+)(?:\/.*)?|t\/(?<page>[^/]+)(?:\/.*)?)$/;

/**
 * Reads an `api-url` in any of its forms: the address of Zuul (`https://host/`, `https://host/zuul/`), of its API
 * (`https://host/api`), of a tenant's API (`https://host/api/tenant/example`), or of a page about a tenant
 * (`https://host/t/example/builds`).
 *
 * @throws ZuulError `invalid-settings`
 */
export function parseApiUrl(text: string): ApiUrl {
  const url = URL.parse(text);
  if (url === null || !['http:', 'https:'].includes(url.protocol)) {
    throw invalid('it is no http or https URL; write it as https://zuul.example.com/');
  }
  if (url.username !== '' || url.password !== '') {
    throw invalid('it holds a user or a password; take them out and configure the authentication instead');
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
    throw invalid('the name of its tenant is not encoded as URLs are; correct it', cause);
  }
}

/** The URL itself stays out of the message: it may hold a password. */
function invalid(reason: string, cause?: unknown): ZuulError {
  return new ZuulError('invalid-settings', `api-url cannot be used: ${reason}`, { cause });
}

import { codeOfStatus, retryAfterSeconds } from '@nodepool-builder/image-builder/internal';
import {
  CloudError,
  type CloudErrorCode,
  cloudError,
  type HttpResponse,
  type RemedyTable,
  remedyFor,
} from '@nodepool-builder/image-builder/plugin';

/** Registry error codes that are more specific than the HTTP status. */
const CODES: Readonly<Record<string, CloudErrorCode>> = {
  UNAUTHORIZED: 'auth-failed',
  DENIED: 'forbidden',
  TOOMANYREQUESTS: 'rate-limited',
};

/** Remedies for protections that the provider itself never sets. */
const PROTECTIONS: RemedyTable = [
  [/immutable|locked|retention/i, "exempt the tag from the registry's rule, or remove its lock"],
];

const TOO_LONG = 'increase the request size limit of the registry, or of the proxy in front of it';
const NO_REPOSITORY = 'create the repository, or correct its name';

/** Remedies that depend on the request. */
const REMEDIES: Readonly<Record<string, string>> = {
  'POST 404': NO_REPOSITORY,
  'PUT 404': NO_REPOSITORY,
  'PATCH 413': TOO_LONG,
  'PUT 413': TOO_LONG,
  'DELETE 403': 'give the credentials permission to delete',
};

/**
 * Converts a registry's error response to an error.
 *
 * @param subject the provider and the request: `provider oci: GET ci/images:debian-1`
 * @param method HTTP method of the request
 */
export function registryError(
  subject: string,
  { status, headers, body }: HttpResponse,
  method = 'GET',
): CloudError {
  const { code = '', message = '' } = firstError(body) ?? {};
  const reason = `${message || `status ${status}`}${code && ` (${code})`}`;
  const known = codeOf(status, code, message);
  const remedy = known === 'quota-exceeded' ? undefined : REMEDIES[`${method} ${status}`];
  const retryAfter = retryAfterSeconds(headers['retry-after'], Date.now());
  const remedies = { ...(remedy && { remedy }), ...remedyFor(reason, PROTECTIONS) };
  return cloudError(known, subject, reason, { status, retryAfter, ...remedies });
}

/** The registry does not permit deletions. */
export class DeletionForbiddenError extends CloudError {
  constructor(subject: string, cause: CloudError) {
    super('bad-request', `${subject}: the registry forbids deletions; permit them in its configuration`, {
      cause,
    });
  }
}

function codeOf(status: number, code: string, message: string): CloudErrorCode {
  // Harbor responds with DENIED when a quota is exceeded.
  if (status < 500 && /quota/i.test(message)) return 'quota-exceeded';
  return CODES[code] ?? codeOfStatus(status);
}

/**
 * Returns the first error from a body `{"errors": [{code, message}]}`; undefined for other bodies, such as those from
 * proxies.
 */
function firstError(body: string): { readonly code?: string; readonly message?: string } | undefined {
  try {
    const { errors } = JSON.parse(body) as { errors?: unknown };
    const [first] = Array.isArray(errors) ? errors : [];
    const { code, message } = Object(first) as Record<string, unknown>;
    return {
      ...(typeof code === 'string' && { code }),
      ...(typeof message === 'string' && { message }),
    };
  } catch {
    return undefined;
  }
}

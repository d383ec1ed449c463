import { OpenStackError } from '../openstack-error.ts';

const MEND_CERTIFICATE = 'ask the operator of the cloud to mend its certificate';
const TRUST_CERTIFICATE =
  'name the file of the authority that signed it as cacert of the cloud in clouds.yaml';

/** What OpenSSL and Node call a certificate that is not to be trusted, and what to do about it. */
const CERTIFICATE_FAULTS: Readonly<Record<string, string>> = {
  DEPTH_ZERO_SELF_SIGNED_CERT: TRUST_CERTIFICATE,
  SELF_SIGNED_CERT_IN_CHAIN: TRUST_CERTIFICATE,
  UNABLE_TO_GET_ISSUER_CERT: TRUST_CERTIFICATE,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: TRUST_CERTIFICATE,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: TRUST_CERTIFICATE,
  CERT_UNTRUSTED: TRUST_CERTIFICATE,
  CERT_SIGNATURE_FAILURE: TRUST_CERTIFICATE,
  INVALID_CA: TRUST_CERTIFICATE,
  CERT_HAS_EXPIRED: MEND_CERTIFICATE,
  CERT_NOT_YET_VALID: MEND_CERTIFICATE,
  CERT_REVOKED: MEND_CERTIFICATE,
  INVALID_PURPOSE: MEND_CERTIFICATE,
  ERR_TLS_CERT_ALTNAME_INVALID: 'use the host name that the certificate is made out to',
};

/** The connection was never made: the request cannot have had an effect. */
const NEVER_SENT: readonly unknown[] = [
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
];

/** The error of a request that got no answer. `request` names the cloud, the method and the path. */
export function networkError(request: string, error: unknown): OpenStackError {
  // the errors of got carry the whole request, its token included: only what is beneath is kept
  const beneath = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  const code = codeOf(error);
  const said = beneath instanceof Error && beneath.message !== '' ? beneath.message : String(code);
  // Node names a proxy that refuses a tunnel by its whole URL.
  const reason = said.replaceAll(/\/\/[^\s/@]*@/g, '//***@');
  const cause = reason === said ? beneath : Object.assign(new Error(reason), { code });
  const remedy = CERTIFICATE_FAULTS[code ?? ''];
  if (remedy !== undefined) {
    return new OpenStackError(
      'certificate-untrusted',
      `${request}: the certificate is not trusted: ${reason}; ${remedy}`,
      {
        cause,
      },
    );
  }
  return new OpenStackError('connection-failed', `${request}: no answer: ${reason}`, { cause });
}

/** Whether a request failed before it was sent. */
export function neverSent(error: OpenStackError): boolean {
  return NEVER_SENT.includes(codeOf(error.cause));
}

function codeOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}

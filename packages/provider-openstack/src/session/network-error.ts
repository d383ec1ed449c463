import { type NetworkFailureKind, networkFailure } from '@nodepool-builder/image-builder/module-kit';
import { OpenStackError } from '../openstack-error.ts';

const REMEDIES: Readonly<Partial<Record<NetworkFailureKind, string>>> = {
  'unknown-authority': 'name the file of the authority that signed it as cacert of the cloud in clouds.yaml',
  'invalid-certificate': 'ask the operator of the cloud to replace it',
  'other-host-name': 'use the host name in the certificate',
};

/** Error of a request without an answer. `request` names the cloud, the method and the path. */
export function networkError(request: string, error: unknown): OpenStackError {
  const failure = networkFailure(error);
  const { message: reason, kind, cause } = failure;
  if (failure.isCertificate) {
    const text = `${request}: the certificate is not trusted: ${reason}; ${REMEDIES[kind]}`;
    return new OpenStackError('certificate-untrusted', text, { cause });
  }
  const code = kind === 'body-too-long' || kind === 'redirect-loop' ? 'invalid-answer' : 'connection-failed';
  return new OpenStackError(code, `${request}: no answer: ${reason}`, { cause });
}

/** Whether a request failed before it was sent. */
export function neverSent({ code, cause }: OpenStackError): boolean {
  return code === 'connection-failed' && networkFailure(cause).kind === 'not-sent';
}

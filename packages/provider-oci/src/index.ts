export { OCI_MODULE, OCI_MODULE as default } from './oci-module.ts';
export { OciProvider, type OciProviderOptions } from './oci-provider.ts';
export type { OciEntry } from './oci-settings.ts';

export { readAttestations, uploadDocument } from './attestation-directory.ts';
export { comparePackages } from './bom/compare-packages.ts';
export { billOfMaterialsPath, readAttestedPackages, readBillOfMaterials } from './bom/read-packages.ts';
export {
  BILL_OF_MATERIALS,
  type BuilderIdentity,
  type BuildFacts,
  buildFactsOf,
} from './build-statement.ts';
export {
  payloadDigest,
  unverifiedStatement,
  type VerifiedStatement,
  verifyBundle,
} from './bundle.ts';
export { type ChainReport, verifyChain } from './chain.ts';
export { ProvenanceError, type ProvenanceErrorCode } from './errors.ts';
export { checkGate } from './gate.ts';
export { readTrustedKeys } from './keys.ts';
export { openSigner, type SignerSettings } from './signer.ts';
export { buildDigestOf, SiteAttester, type SiteAttesterSettings } from './site-attester.ts';
export type {
  BundleText,
  ChainLink,
  FoundAttestation,
  LinkState,
  LocalFile,
  Package,
  PackageChanges,
  Signer,
  Statement,
  StatementSubject,
  TrustedKey,
  VerifiedSubject,
} from './types.ts';
export { PACKAGE } from './types.ts';
export { type FinishedUpload, type UploadFacts, uploadFactsOf } from './upload-statement.ts';

export { imageBuilderContract } from './image-builder-contract.ts';
export { imageListContract, type ListResponse, type ListSite } from './image-list-contract.ts';
export { imageProviderContract } from './image-provider-contract.ts';
export { type InstanceSite, instanceProviderContract } from './instance-provider-contract.ts';

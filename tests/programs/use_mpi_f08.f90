! use mpi_f08: sleeps 20 ms and says rank and size.
program use_mpi_f08
  use mpi_f08
  implicit none
  integer :: rank, size
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  call execute_command_line('sleep 0.02')
  print '(a,i0,a,i0)', 'rank ', rank, ' of ', size
  call MPI_Finalize()
end program

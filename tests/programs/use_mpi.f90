! use mpi, with threads: sleeps 20 ms and says rank and size.
program use_mpi
  use mpi
  implicit none
  integer :: code, rank, size, provided
  call MPI_Init_thread(MPI_THREAD_FUNNELED, provided, code)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
  call MPI_Comm_size(MPI_COMM_WORLD, size, code)
  call execute_command_line('sleep 0.02')
  print '(a,i0,a,i0)', 'rank ', rank, ' of ', size
  call MPI_Finalize(code)
end program
